defmodule Oip.Compute do
  @moduledoc "What the models compute: from the tensors of all inputs, by name, to those of all outputs, as declared."
  alias Oip.{Error, Tensor}

  def run(model, version, inputs) do
    ordered = Enum.map(model.inputs, fn {name, _, _} -> inputs[name] end)
    compute(model.compute, model, version, ordered)
  end

  defp compute("identity", model, _, inputs) do
    for {{name, datatype, _}, input} <- Enum.zip(model.outputs, inputs), do: %{input | name: name, datatype: datatype}
  end

  defp compute("cast", model, _, [input]), do: [output(model, 0, input.shape, Tensor.elements(input))]

  defp compute("add_sub", model, _, inputs) do
    [a, b] = for name <- ["A", "B"], do: Enum.find(inputs, &(&1.name == name))
    if a.shape != b.shape, do: Error.bad("inputs 'A' and 'B' must have one shape")
    pairs = Enum.zip(Tensor.elements(a), Tensor.elements(b))

    [
      output(model, 0, a.shape, Enum.map(pairs, fn {x, y} -> x + y end)),
      output(model, 1, a.shape, Enum.map(pairs, fn {x, y} -> x - y end))
    ]
  end

  defp compute("length", model, _, [input]) do
    [output(model, 0, input.shape, Enum.map(Tensor.elements(input), &byte_size/1))]
  end

  defp compute("weighted_sum", model, _, [input]) do
    sum = Tensor.elements(input) |> Enum.with_index(1) |> Enum.reduce(0, fn {x, k}, sum -> sum + k * x end)
    [output(model, 0, [1], [sum])]
  end

  defp compute("emit", model, _, [input]) do
    [a, b] = Tensor.elements(input)
    if a < 0 or b < 0, do: Error.bad("input '#{input.name}': a count must not be negative")
    if a + b > 10_000_000, do: Error.bad("input '#{input.name}': a count is too large")

    [
      output(model, 0, [a], Enum.take(Stream.iterate(1, &(&1 + 1)), a)),
      output(model, 1, [b], for(k <- 1..b//1, do: "t#{k}"))
    ]
  end

  defp compute("text", model, _, [input]) do
    elements = Tensor.elements(input)
    [output(model, 0, input.shape, elements), output(model, 1, input.shape, Enum.map(elements, &Integer.to_string/1))]
  end

  defp compute("table", model, _, [input]) do
    scores =
      for x <- Tensor.elements(input) do
        if x in 1..length(model.table), do: Enum.at(model.table, x - 1), else: Error.bad("input '#{input.name}': #{x} is not in the table")
      end

    [output(model, 0, [length(scores)], scores)]
  end

  defp compute("transpose", model, _, [%{shape: [i, j, k]} = input]) do
    at = input |> Tensor.elements() |> List.to_tuple()
    numbers = for c <- 0..(k - 1)//1, b <- 0..(j - 1)//1, a <- 0..(i - 1)//1, do: elem(at, (a * j + b) * k + c)
    texts = for c <- 0..(k - 1)//1, b <- 0..(j - 1)//1, do: Integer.to_string(elem(at, b * k + c))
    [output(model, 0, [k, j, i], numbers), output(model, 1, [k, j], texts)]
  end

  defp compute("add_version", model, version, [input]) do
    [output(model, 0, input.shape, Enum.map(Tensor.elements(input), &(&1 + String.to_integer(version))))]
  end

  defp compute("documented_binary", model, _, [input0, input1]), do: [output(model, 0, [3, 2], rows(input1, input0))]

  defp compute("documented_mixed", model, _, [input0, input1, input2]) do
    sums = Enum.zip_with(Tensor.elements(input0), Tensor.elements(input1), &add/2)
    [output(model, 0, [3, 2], rows(input2, input0)), output(model, 1, [2, 2], sums)]
  end

  defp compute("documented_all_outputs", model, _, [input]) do
    [a, b] = Tensor.elements(input)
    [output(model, 0, [3, 2], [a, b, b, a, 0.0, 0.0]), output(model, 1, [2, 2], [a, b, b, a])]
  end

  defp compute("documented_raw", model, _, [input]) do
    [{first, _, _}, {last, _, _}] = model.outputs

    [
      %{input | name: first, shape: [3, 1], data: binary_part(input.data, 0, 12)},
      %{input | name: last, shape: [3, 1], data: binary_part(input.data, 4, 12)}
    ]
  end

  defp compute(other, _, _, _), do: raise(Error, message: "nothing computes '#{other}'", status: 501)

  defp output(model, index, shape, elements) do
    {name, datatype, _} = Enum.at(model.outputs, index)
    Tensor.new(name, datatype, shape, elements)
  end

  # Row k is [flag k, number k].
  defp rows(flags, numbers) do
    Enum.zip(Tensor.elements(flags), Tensor.elements(numbers))
    |> Enum.flat_map(fn {flag, number} -> [if(flag, do: 1.0, else: 0.0), number] end)
  end

  defp add(x, y) when is_number(x), do: x + y
  defp add(x, _), do: x
end
