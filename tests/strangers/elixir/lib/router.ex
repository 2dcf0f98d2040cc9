defmodule Oip.Router do
  @moduledoc "The endpoints: from a request to `{status, headers, body}`."
  alias Oip.{Cache, Error, Infer, Json, Model, Models}

  @json [{"content-type", "application/json"}]
  @platform "onnx_onnxv1"

  @doc "`headers` is a map, names in lower case; `target` is the path of the URL as sent."
  def handle(method, target, headers, body) do
    path = target |> String.split("?") |> hd() |> String.split("/", trim: true)
    route(method, Enum.map(path, &decode/1), headers, body)
  rescue
    e in Error ->
      error(e.status, e.message)

    e ->
      IO.puts(:stderr, Exception.format(:error, e, __STACKTRACE__))
      error(500, "internal error")
  end

  defp decode(segment) do
    URI.decode(segment)
  rescue
    ArgumentError -> Error.bad("the path is malformed")
  end

  def error(status, message), do: {status, @json, Json.encode({:object, [{"error", valid(message)}]})}

  defp route("GET", ["v2"], _, _) do
    extensions = ["binary_tensor_data", "classification", "parameters"]
    ok([{"name", "oip-elixir"}, {"version", "1.0.0"}, {"extensions", extensions}])
  end

  defp route("GET", ["v2", "health", probe], _, _) when probe in ["live", "ready"], do: ok([{"live", true}])

  defp route(method, ["v2", "models", name, "versions", version | rest], headers, body) do
    model(method, {name, version}, rest, headers, body)
  end

  defp route(method, ["v2", "models", name | rest], headers, body), do: model(method, {name, nil}, rest, headers, body)
  defp route(_, ["v2" | rest], _, _) when rest in [[], ["health", "live"], ["health", "ready"]], do: wrong_method()
  defp route(_, _, _, _), do: Error.not_found("no such endpoint")

  defp model("POST", {name, version}, ["infer"], headers, body) do
    {headers, body} = name |> Models.find!(version) |> Infer.run(headers, body)
    {200, headers, body}
  end

  defp model("GET", {name, version}, [], _, _) do
    {model, _} = Models.find!(name, version)
    {200, @json, Cache.fetch({:metadata, model.name}, fn -> metadata(model) end)}
  end

  defp model("GET", {name, version}, ["ready"], _, _) do
    {model, _} = Models.find!(name, version)
    ok([{"name", model.name}, {"ready", true}])
  end

  defp model(_, _, rest, _, _) when rest in [[], ["ready"], ["infer"]], do: wrong_method()
  defp model(_, _, _, _, _), do: Error.not_found("no such endpoint")

  defp metadata(model) do
    IO.iodata_to_binary(
      Json.encode(
        {:object, [
           {"name", model.name},
           {"versions", model.versions},
           {"platform", @platform},
           {"inputs", Enum.map(model.inputs, &tensor(model, &1))},
           {"outputs", Enum.map(model.outputs, &tensor(model, &1))}
         ]}
      )
    )
  end

  defp tensor(model, {name, datatype, shape}) do
    {:object, [{"name", name}, {"datatype", datatype}, {"shape", Model.full_shape(model, shape)}]}
  end

  defp ok(fields), do: {200, @json, Json.encode({:object, fields})}
  defp wrong_method, do: raise(Error, message: "the endpoint does not take this method", status: 405)

  # A message may quote what a client sent, and a path may be anything.
  defp valid(message), do: if(String.valid?(message), do: message, else: inspect(message))
end
