defmodule Oip.Request do
  @moduledoc """
  An inference request, read from the body of the POST.

  `inputs`: input name -> tensor. `outputs`: `{name, options}` in the order of the answer, where options are
  `%{binary: boolean, classification: count or nil}`.
  """
  alias Oip.{Error, Json, Model, Tensor}
  defstruct [:id, :inputs, :outputs]

  @max_dimension 0xFFFFFFFFFFFFFFFF

  @doc "`json_size` is the Inference-Header-Content-Length, nil without that header."
  def parse!(model, body, json_size) do
    {json, binary} = split!(body, json_size)
    document = decode!(json)
    parameters = parameters!(document, "the request")
    inputs = inputs!(model, list!(document, "inputs"), binary, json_size != nil)

    %__MODULE__{
      id: id!(document),
      inputs: inputs,
      outputs: outputs!(model, Map.get(document, "outputs", []), boolean!(parameters, "binary_data_output", false))
    }
  end

  @doc "A raw binary request: the body is the binary data of the only input; all outputs are binary."
  def raw!(%Model{inputs: [{name, datatype, shape}]} = model, body) do
    shape = if model.batching, do: [1 | raw_shape!(model, datatype, shape, body)], else: raw_shape!(model, datatype, shape, body)
    Tensor.check_binary!(name, datatype, Tensor.count(shape), body)
    input = %Tensor{name: name, datatype: datatype, shape: shape, data: body}
    %__MODULE__{id: nil, inputs: %{name => input}, outputs: all_outputs(model, true)}
  end

  def raw!(model, _), do: Error.bad("model '#{model.name}' has several inputs: it takes no raw binary request")

  defp raw_shape!(_, "BYTES", [1], _), do: [1]
  defp raw_shape!(model, "BYTES", _, _), do: Error.bad("model '#{model.name}': a raw BYTES input must have shape [1]")

  defp raw_shape!(model, datatype, shape, body) do
    fixed = Tensor.size(datatype) * Tensor.count(Enum.reject(shape, &(&1 == -1)))

    case Enum.count(shape, &(&1 == -1)) do
      0 ->
        shape

      1 when rem(byte_size(body), fixed) == 0 ->
        Enum.map(shape, &if(&1 == -1, do: div(byte_size(body), fixed), else: &1))

      1 ->
        Error.bad("#{byte_size(body)} bytes of raw binary data are not a multiple of #{fixed}")

      _ ->
        Error.bad("model '#{model.name}' has several variable dimensions: it takes no raw binary request")
    end
  end

  # --- the JSON object ----------------------------------------------------------------------------------------

  defp split!(body, nil), do: {body, ""}

  defp split!(body, size) do
    case body do
      <<json::binary-size(size), binary::binary>> -> {json, binary}
      _ -> Error.bad("Inference-Header-Content-Length is #{size}, but the body has #{byte_size(body)} bytes")
    end
  end

  defp decode!(json) do
    case Json.decode(json) do
      {:ok, %{} = document} -> document
      {:ok, _} -> Error.bad("the body must be a JSON object")
      {:error, reason} -> Error.bad("the body is not JSON: #{reason}")
    end
  end

  defp id!(document) do
    case document do
      %{"id" => id} when is_binary(id) -> id
      %{"id" => _} -> Error.bad("\"id\" must be a string")
      _ -> nil
    end
  end

  defp list!(object, key) do
    case object do
      %{^key => list} when is_list(list) -> list
      _ -> Error.bad("\"#{key}\" must be given, as an array")
    end
  end

  defp string!(%{} = object, key) do
    case object do
      %{^key => text} when is_binary(text) -> text
      _ -> Error.bad("\"#{key}\" must be given, as a string")
    end
  end

  defp string!(_, _), do: Error.bad("a tensor must be a JSON object")

  defp parameters!(object, where) do
    case Map.get(object, "parameters", %{}) do
      %{} = parameters ->
        for {key, value} <- parameters, not (is_binary(value) or is_number(value) or is_boolean(value)) do
          Error.bad("parameter '#{key}' of #{where} must be a string, a number or a boolean")
        end

        parameters

      _ ->
        Error.bad("\"parameters\" of #{where} must be an object")
    end
  end

  defp boolean!(parameters, key, default) do
    case Map.get(parameters, key, default) do
      value when is_boolean(value) -> value
      _ -> Error.bad("parameter '#{key}' must be a boolean")
    end
  end

  # --- inputs -------------------------------------------------------------------------------------------------

  defp inputs!(model, list, binary, header?) do
    {tensors, rest} = Enum.map_reduce(list, binary, &input!(model, &1, &2, header?))
    if rest != "", do: Error.bad("#{byte_size(rest)} bytes of binary data belong to no input")
    inputs = Map.new(tensors, &{&1.name, &1})
    if map_size(inputs) != length(tensors), do: Error.bad("an input is given twice")

    for {name, _, _} <- model.inputs, not is_map_key(inputs, name) do
      Error.bad("input '#{name}' of model '#{model.name}' is missing")
    end

    inputs
  end

  defp input!(model, object, binary, header?) do
    name = string!(object, "name")
    {_, datatype, declared} = List.keyfind(model.inputs, name, 0) || Error.bad("model '#{model.name}' has no input '#{name}'")
    if string!(object, "datatype") != datatype, do: Error.bad("input '#{name}' has datatype #{datatype}")
    shape = shape!(object, name)

    unless Model.fits?(model, Model.full_shape(model, declared), shape) do
      Error.bad("input '#{name}': shape #{inspect(shape)} is none of #{inspect(Model.full_shape(model, declared))}")
    end

    {data, rest} = data!(object, name, datatype, shape, binary, header?)
    {%Tensor{name: name, datatype: datatype, shape: shape, data: data}, rest}
  end

  defp shape!(object, name) do
    shape = list!(object, "shape")

    unless Enum.all?(shape, &(is_integer(&1) and &1 in 0..@max_dimension)) do
      Error.bad("input '#{name}': a dimension must be an unsigned 64-bit integer")
    end

    shape
  end

  defp data!(object, name, datatype, shape, binary, header?) do
    case {parameters!(object, "input '#{name}'"), object} do
      {%{"binary_data_size" => _}, %{"data" => _}} ->
        Error.bad("input '#{name}' has both \"data\" and binary data")

      {%{"binary_data_size" => _}, _} when not header? ->
        Error.bad("input '#{name}' has binary data: the Inference-Header-Content-Length header must be given")

      {%{"binary_data_size" => size}, _} when is_integer(size) and size in 0..byte_size(binary) ->
        <<data::binary-size(size), rest::binary>> = binary
        Tensor.check_binary!(name, datatype, Tensor.count(shape), data)
        {data, rest}

      {%{"binary_data_size" => _}, _} ->
        Error.bad("input '#{name}': binary_data_size must be an integer, at most the #{byte_size(binary)} bytes that are left")

      {_, %{"data" => data}} ->
        {Tensor.from_json!(name, datatype, shape, data), binary}

      _ ->
        Error.bad("input '#{name}' has no data")
    end
  end

  # --- outputs ------------------------------------------------------------------------------------------------

  defp all_outputs(model, binary?) do
    for {name, _, _} <- model.outputs, do: {name, %{binary: binary?, classification: nil}}
  end

  defp outputs!(model, [], binary?), do: all_outputs(model, binary?)

  defp outputs!(model, list, binary?) when is_list(list) do
    outputs = Enum.map(list, &output!(model, &1, binary?))
    names = Enum.map(outputs, &elem(&1, 0))
    if Enum.uniq(names) != names, do: Error.bad("an output is requested twice")
    outputs
  end

  defp outputs!(_, _, _), do: Error.bad("\"outputs\" must be an array")

  defp output!(model, object, binary?) do
    name = string!(object, "name")
    List.keyfind(model.outputs, name, 0) || Error.bad("model '#{model.name}' has no output '#{name}'")
    parameters = parameters!(object, "output '#{name}'")
    {name, %{binary: boolean!(parameters, "binary_data", binary?), classification: parameters["classification"]}}
  end
end
