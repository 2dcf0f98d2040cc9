defmodule Oip.Body do
  @moduledoc "Reads the body of an HTTP request: by length or in chunks, and without its content encoding."
  alias Oip.Error

  @limit 512 * 1024 * 1024
  @piece 1024 * 1024
  @timeout 60_000

  @doc "`{:ok, body}`, `{:error, status, message}` or `:closed`. Asks a client that waits for it to go on."
  def read(socket, headers) do
    length = headers["content-length"]

    cond do
      headers["transfer-encoding"] != nil ->
        if String.downcase(headers["transfer-encoding"]) == "chunked" do
          go_on(socket, headers)
          read_chunks(socket, [], 0)
        else
          {:error, 501, "unknown transfer encoding"}
        end

      length == nil ->
        {:ok, ""}

      not (length =~ ~r/\A[0-9]+\z/) ->
        {:error, 400, "Content-Length must be a number"}

      String.to_integer(length) > @limit ->
        {:error, 413, "the body is too large"}

      true ->
        go_on(socket, headers)
        read_length(socket, String.to_integer(length), [])
    end
  end

  defp go_on(socket, headers) do
    if String.downcase(headers["expect"] || "") == "100-continue" do
      :gen_tcp.send(socket, "HTTP/1.1 100 Continue\r\n\r\n")
    end
  end

  defp read_length(_, 0, pieces), do: {:ok, pieces |> Enum.reverse() |> IO.iodata_to_binary()}

  defp read_length(socket, left, pieces) do
    case :gen_tcp.recv(socket, min(left, @piece), @timeout) do
      {:ok, piece} -> read_length(socket, left - byte_size(piece), [piece | pieces])
      {:error, _} -> :closed
    end
  end

  defp read_chunks(socket, pieces, total) do
    with {:ok, line} <- line(socket),
         {size, _} when size >= 0 <- Integer.parse(line, 16) do
      cond do
        total + size > @limit ->
          {:error, 413, "the body is too large"}

        size == 0 ->
          with :ok <- trailers(socket), do: {:ok, pieces |> Enum.reverse() |> IO.iodata_to_binary()}

        true ->
          with {:ok, piece} <- read_length(socket, size, []), {:ok, "\r\n"} <- line(socket) do
            read_chunks(socket, [piece | pieces], total + size)
          else
            {:ok, _} -> {:error, 400, "a chunk is not as long as it says"}
            closed -> closed
          end
      end
    else
      :closed -> :closed
      _ -> {:error, 400, "a chunk has no size"}
    end
  end

  defp trailers(socket) do
    case line(socket) do
      {:ok, "\r\n"} -> :ok
      {:ok, _} -> trailers(socket)
      closed -> closed
    end
  end

  defp line(socket) do
    :inet.setopts(socket, packet: :line)
    result = :gen_tcp.recv(socket, 0, @timeout)
    :inet.setopts(socket, packet: :raw)
    with {:error, _} <- result, do: :closed
  end

  @doc "The body without its content encoding."
  def decode!(body, headers) do
    encodings = (headers["content-encoding"] || "") |> String.downcase() |> String.split(",", trim: true)
    encodings |> Enum.map(&String.trim/1) |> Enum.reverse() |> Enum.reduce(body, &undo!/2)
  end

  defp undo!("identity", body), do: body
  defp undo!(encoding, body) when encoding in ["gzip", "x-gzip"], do: inflate!(body, 31, encoding)
  # "deflate" is the zlib format; some clients send the bare one.
  defp undo!("deflate", <<cmf, flags, _::binary>> = body) when rem(cmf * 256 + flags, 31) == 0 and rem(cmf, 16) == 8 do
    inflate!(body, 15, "deflate")
  end

  defp undo!("deflate", body), do: inflate!(body, -15, "deflate")
  defp undo!(other, _), do: raise(Error, message: "unknown content encoding '#{other}'", status: 415)

  defp inflate!(body, window_bits, encoding) do
    z = :zlib.open()

    try do
      # gzip may have several members (RFC 1952, 2.2); nothing may follow a deflate stream.
      :zlib.inflateInit(z, window_bits, if(encoding == "deflate", do: :error, else: :reset))
      inflated = z |> inflate(:zlib.safeInflate(z, body), [], 0) |> IO.iodata_to_binary()
      :zlib.inflateEnd(z)
      inflated
    rescue
      ErlangError -> Error.bad("the body is not #{encoding}")
    after
      :zlib.close(z)
    end
  end

  defp inflate(_, {:finished, out}, pieces, _), do: Enum.reverse([out | pieces])

  defp inflate(z, {:continue, out}, pieces, total) do
    total = total + IO.iodata_length(out)
    if total > @limit, do: raise(Error, message: "the body is too large", status: 413)
    inflate(z, :zlib.safeInflate(z, []), [out | pieces], total)
  end
end
