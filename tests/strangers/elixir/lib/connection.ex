defmodule Oip.Connection do
  @moduledoc "One connection: HTTP/1.1 requests, one after the other, until one side closes."
  alias Oip.{Body, Error, Router}

  @idle 120_000
  @max_headers 200
  @reasons %{
    200 => "OK", 400 => "Bad Request", 404 => "Not Found", 405 => "Method Not Allowed", 413 => "Content Too Large",
    415 => "Unsupported Media Type", 431 => "Request Header Fields Too Large", 500 => "Internal Server Error",
    501 => "Not Implemented"
  }

  def serve(socket) do
    case read_head(socket) do
      {:ok, method, target, version, headers} ->
        :inet.setopts(socket, packet: :raw)
        one(socket, method, target, version, headers)

      {:error, status, message} ->
        :inet.setopts(socket, packet: :raw)
        send_last(socket, Router.error(status, message))

      :closed ->
        :gen_tcp.close(socket)
    end
  end

  defp one(socket, method, target, version, headers) do
    case Body.read(socket, headers) do
      {:ok, body} ->
        keep? = keep?(version, String.downcase(headers["connection"] || ""))
        sent = socket |> send_response(method, answer(method, target, headers, body), keep?)
        if keep? and sent == :ok, do: serve(socket), else: close(socket)

      {:error, status, message} ->
        send_last(socket, Router.error(status, message))

      :closed ->
        :gen_tcp.close(socket)
    end
  end

  defp answer(method, target, headers, body) do
    method = if method == "HEAD", do: "GET", else: method
    Router.handle(method, target, headers, Body.decode!(body, headers))
  rescue
    e in Error -> Router.error(e.status, e.message)
  end

  defp keep?({1, 1}, connection), do: not (connection =~ "close")
  defp keep?(_, connection), do: connection =~ "keep-alive"

  # --- reading ------------------------------------------------------------------------------------------------

  defp read_head(socket) do
    :inet.setopts(socket, packet: :http_bin)

    case :gen_tcp.recv(socket, 0, @idle) do
      {:ok, {:http_request, method, target, version}} -> read_headers(socket, to_string(method), path(target), version, [])
      {:ok, {:http_error, blank}} when blank in ["\r\n", "\n"] -> read_head(socket)
      {:ok, _} -> {:error, 400, "this is not an HTTP request"}
      {:error, :emsgsize} -> {:error, 431, "the request line is too long"}
      {:error, _} -> :closed
    end
  end

  defp path({:abs_path, path}), do: path
  defp path({:absoluteURI, _, _, _, path}), do: path
  defp path(_), do: "*"

  defp read_headers(_, _, _, _, headers) when length(headers) > @max_headers, do: {:error, 431, "too many headers"}

  defp read_headers(socket, method, target, version, headers) do
    case :gen_tcp.recv(socket, 0, @idle) do
      {:ok, {:http_header, _, name, _, value}} ->
        read_headers(socket, method, target, version, [{String.downcase(to_string(name)), value} | headers])

      {:ok, :http_eoh} ->
        unique(method, target, version, Enum.reverse(headers))

      {:ok, _} ->
        {:error, 400, "a header is malformed"}

      {:error, :emsgsize} ->
        {:error, 431, "a header is too long"}

      {:error, _} ->
        :closed
    end
  end

  # Several fields of one name are one list, but a length is one number.
  defp unique(method, target, version, list) do
    headers = Enum.group_by(list, &elem(&1, 0), &elem(&1, 1))
    lengths = Enum.flat_map(["content-length", "inference-header-content-length"], &[Enum.uniq(headers[&1] || [])])

    if Enum.any?(lengths, &(length(&1) > 1)) do
      {:error, 400, "a length is given twice, differently"}
    else
      {:ok, method, target, version, Map.new(headers, fn {name, values} -> {name, values |> Enum.uniq() |> Enum.join(", ")} end)}
    end
  end

  # --- writing ------------------------------------------------------------------------------------------------

  defp send_response(socket, method, {status, headers, body}, keep?) do
    connection = if keep?, do: [], else: [{"connection", "close"}]
    fields = [{"content-length", Integer.to_string(IO.iodata_length(body))} | connection] ++ headers
    head = ["HTTP/1.1 #{status} #{@reasons[status]}\r\n", for({name, value} <- fields, do: [name, ": ", value, "\r\n"]), "\r\n"]
    :gen_tcp.send(socket, if(method == "HEAD", do: head, else: [head, body]))
  end

  defp send_last(socket, response) do
    send_response(socket, "", response, false)
    close(socket)
  end

  # What the client still sends must not make the system throw away the answer.
  defp close(socket) do
    :gen_tcp.shutdown(socket, :write)
    drain(socket, 100)
    :gen_tcp.close(socket)
  end

  defp drain(_, 0), do: :ok

  defp drain(socket, pieces) do
    case :gen_tcp.recv(socket, 0, 1000) do
      {:ok, _} -> drain(socket, pieces - 1)
      {:error, _} -> :ok
    end
  end
end
