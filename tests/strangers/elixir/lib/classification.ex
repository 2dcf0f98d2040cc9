defmodule Oip.Classification do
  @moduledoc "The classification extension: an output as its n highest elements, \"value:index[:label]\"."
  alias Oip.{Error, Tensor}

  def apply(model, %Tensor{} = tensor, count) do
    if tensor.datatype == "BYTES", do: Error.bad("output '#{tensor.name}': BYTES cannot be classified")
    {batch, item} = split(model, tensor.shape)
    classes = Tensor.count(item)

    unless is_integer(count) and count in 1..classes//1 do
      Error.bad("output '#{tensor.name}': classification must be an integer from 1 to #{classes}")
    end

    labels = model.labels |> Map.get(tensor.name, []) |> List.to_tuple()

    texts =
      tensor
      |> Tensor.elements()
      |> Enum.chunk_every(classes)
      |> Enum.flat_map(&(&1 |> top(count) |> Enum.map(fn found -> text(tensor.datatype, found, labels) end)))

    Tensor.new(tensor.name, "BYTES", batch ++ [count], texts)
  end

  defp split(%{batching: true}, [batch | item]), do: {[batch], item}
  defp split(_, shape), do: {[], shape}

  # The highest first; of equal ones the lower index; NaN after all others.
  defp top(elements, count) do
    elements
    |> Enum.with_index()
    |> Enum.sort_by(fn {x, _} -> rank(x) end, &>=/2)
    |> Enum.take(count)
  end

  defp rank(:nan), do: {0, 0}
  defp rank(:neg_inf), do: {1, 0}
  defp rank(:inf), do: {3, 0}
  defp rank(true), do: {2, 1}
  defp rank(false), do: {2, 0}
  defp rank(x), do: {2, x}

  defp text(datatype, {x, index}, labels) do
    value = Tensor.decimal(datatype, x)
    if index < tuple_size(labels), do: "#{value}:#{index}:#{elem(labels, index)}", else: "#{value}:#{index}"
  end
end
