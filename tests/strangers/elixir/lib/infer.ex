defmodule Oip.Infer do
  @moduledoc "One inference, from the body of a request to the body of its answer."
  alias Oip.{Classification, Compute, Error, Json, Model, Request, Tensor}

  @doc "`{headers, body}` of a successful answer."
  def run({model, version}, headers, body) do
    request =
      case json_size!(headers) do
        0 -> Request.raw!(model, body)
        size -> Request.parse!(model, body, size)
      end

    computed = Map.new(Compute.run(model, version, request.inputs), &{&1.name, &1})

    request.outputs
    |> Enum.map(fn {name, options} -> {finish(model, computed[name], options), options.binary} end)
    |> answer(model, version, request.id)
  end

  defp json_size!(headers) do
    case headers["inference-header-content-length"] do
      nil -> nil
      text -> if text =~ ~r/\A[0-9]+\z/, do: String.to_integer(text), else: Error.bad("Inference-Header-Content-Length must be a number")
    end
  end

  defp finish(_, tensor, %{classification: nil}), do: tensor
  defp finish(model, tensor, %{classification: count}), do: Classification.apply(model, tensor, count)

  # The JSON object, then the data of the binary outputs in the order of the object.
  defp answer(outputs, %Model{} = model, version, id) do
    head = [{"model_name", model.name}, {"model_version", version}] ++ if(id, do: [{"id", id}], else: [])
    json = IO.iodata_to_binary(Json.encode({:object, head ++ [{"outputs", Enum.map(outputs, &describe/1)}]}))
    binary = for {tensor, true} <- outputs, do: tensor.data

    if Enum.any?(outputs, &elem(&1, 1)) do
      size = Integer.to_string(byte_size(json))
      {[{"content-type", "application/octet-stream"}, {"inference-header-content-length", size}], [json, binary]}
    else
      {[{"content-type", "application/json"}], json}
    end
  end

  defp describe({%Tensor{} = tensor, binary?}) do
    content =
      if binary?,
        do: {"parameters", {:object, [{"binary_data_size", byte_size(tensor.data)}]}},
        else: {"data", Tensor.to_json!(tensor)}

    {:object, [{"name", tensor.name}, {"shape", tensor.shape}, {"datatype", tensor.datatype}, content]}
  end
end
