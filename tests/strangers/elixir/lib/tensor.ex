defmodule Oip.Tensor do
  @moduledoc """
  A tensor: name, datatype, shape and its elements in the binary form of the protocol (little-endian, row-major,
  BYTES with 4-byte lengths). Elements as terms are integers, floats, `:nan`, `:inf`, `:neg_inf`, booleans, binaries.
  """
  import Bitwise
  alias Oip.Error
  defstruct [:name, :datatype, :shape, :data]

  @sizes %{
    "BOOL" => 1, "UINT8" => 1, "UINT16" => 2, "UINT32" => 4, "UINT64" => 8, "INT8" => 1, "INT16" => 2,
    "INT32" => 4, "INT64" => 8, "FP16" => 2, "BF16" => 2, "FP32" => 4, "FP64" => 8
  }
  @floats ["FP16", "BF16", "FP32", "FP64"]

  def float?(datatype), do: datatype in @floats

  @doc "Bytes of one element; nil for BYTES."
  def size(datatype), do: @sizes[datatype]

  @doc "The number of elements of a shape."
  def count(shape), do: Enum.reduce(shape, 1, &(&1 * &2))

  def new(name, datatype, shape, elements) do
    %__MODULE__{name: name, datatype: datatype, shape: shape, data: pack(datatype, elements)}
  end

  def elements(%__MODULE__{datatype: datatype, data: data}), do: unpack(datatype, data)

  # --- binary form --------------------------------------------------------------------------------------------

  @doc "Checks that `data` is a tensor of `count` elements."
  def check_binary!(name, "BYTES", count, data) do
    case count_bytes(data, 0) do
      ^count -> :ok
      :error -> Error.bad("input '#{name}': the lengths of its BYTES elements do not fit its binary data")
      n -> Error.bad("input '#{name}': #{n} elements in its binary data, its shape needs #{count}")
    end
  end

  def check_binary!(name, datatype, count, data) do
    if byte_size(data) != count * size(datatype) do
      Error.bad("input '#{name}': #{byte_size(data)} bytes of binary data, its shape needs #{count * size(datatype)}")
    end

    if datatype == "BOOL" and not bools?(data) do
      Error.bad("input '#{name}': a BOOL element is a byte 0 or 1")
    end

    :ok
  end

  defp count_bytes("", n), do: n
  defp count_bytes(<<len::little-32, _::binary-size(len), rest::binary>>, n), do: count_bytes(rest, n + 1)
  defp count_bytes(_, _), do: :error

  defp bools?(<<b, rest::binary>>) when b in 0..1, do: bools?(rest)
  defp bools?(rest), do: rest == ""

  def pack(datatype, elements), do: for(x <- elements, into: "", do: encode(datatype, x))

  def unpack("BOOL", data), do: for(<<x <- data>>, do: x == 1)
  def unpack("UINT8", data), do: for(<<x <- data>>, do: x)
  def unpack("UINT16", data), do: for(<<x::little-16 <- data>>, do: x)
  def unpack("UINT32", data), do: for(<<x::little-32 <- data>>, do: x)
  def unpack("UINT64", data), do: for(<<x::little-64 <- data>>, do: x)
  def unpack("INT8", data), do: for(<<x::signed-8 <- data>>, do: x)
  def unpack("INT16", data), do: for(<<x::little-signed-16 <- data>>, do: x)
  def unpack("INT32", data), do: for(<<x::little-signed-32 <- data>>, do: x)
  def unpack("INT64", data), do: for(<<x::little-signed-64 <- data>>, do: x)
  def unpack("BYTES", data), do: for(<<len::little-32, x::binary-size(len) <- data>>, do: x)
  def unpack("FP16", data), do: for(<<x::binary-2 <- data>>, do: fp16(x))
  def unpack("BF16", data), do: for(<<x::binary-2 <- data>>, do: fp32(<<0, 0, x::binary>>))
  def unpack("FP32", data), do: for(<<x::binary-4 <- data>>, do: fp32(x))
  def unpack("FP64", data), do: for(<<x::binary-8 <- data>>, do: fp64(x))

  # A NaN or an infinity does not match a float segment.
  defp fp16(<<x::little-float-16>>), do: x
  defp fp16(<<x::little-16>>), do: special(x >>> 15, x &&& 0x3FF)
  defp fp32(<<x::little-float-32>>), do: x
  defp fp32(<<x::little-32>>), do: special(x >>> 31, x &&& 0x7FFFFF)
  defp fp64(<<x::little-float-64>>), do: x
  defp fp64(<<x::little-64>>), do: special(x >>> 63, x &&& 0xFFFFFFFFFFFFF)

  defp special(0, 0), do: :inf
  defp special(1, 0), do: :neg_inf
  defp special(_, _), do: :nan

  @doc "One element in binary form. Integers wrap, floats that are too large become infinite."
  def encode("BOOL", true), do: <<1>>
  def encode("BOOL", false), do: <<0>>
  def encode("BYTES", x), do: <<byte_size(x)::little-32, x::binary>>
  def encode("FP16", :nan), do: <<0x7E00::little-16>>
  def encode("FP16", :inf), do: <<0x7C00::little-16>>
  def encode("FP16", :neg_inf), do: <<0xFC00::little-16>>
  def encode("FP16", x), do: overflow("FP16", x, fn -> <<x::little-float-16>> end)
  def encode("FP32", :nan), do: <<0x7FC00000::little-32>>
  def encode("FP32", :inf), do: <<0x7F800000::little-32>>
  def encode("FP32", :neg_inf), do: <<0xFF800000::little-32>>
  def encode("FP32", x), do: overflow("FP32", x, fn -> <<x::little-float-32>> end)
  def encode("FP64", :nan), do: <<0x7FF8000000000000::little-64>>
  def encode("FP64", :inf), do: <<0x7FF0000000000000::little-64>>
  def encode("FP64", :neg_inf), do: <<0xFFF0000000000000::little-64>>
  def encode("FP64", x), do: overflow("FP64", x, fn -> <<x::little-float-64>> end)

  def encode("BF16", x) do
    <<bits::little-32>> = encode("FP32", x)
    # to nearest, ties to even; a NaN has nothing in its lower half here
    <<((bits + 0x7FFF + (bits >>> 16 &&& 1)) >>> 16)::little-16>>
  end

  def encode(datatype, x), do: <<x::little-size(@sizes[datatype])-unit(8)>>

  defp overflow(datatype, x, fun) do
    fun.()
  rescue
    ArgumentError -> encode(datatype, if(x > 0, do: :inf, else: :neg_inf))
  end

  # --- JSON form ----------------------------------------------------------------------------------------------

  @doc "The binary form of \"data\" of a request: flat, or nested as the shape says."
  def from_json!(name, datatype, shape, data) do
    flat = flatten!(name, shape, data)

    if length(flat) != count(shape) do
      Error.bad("input '#{name}': #{length(flat)} elements in \"data\", its shape needs #{count(shape)}")
    end

    for x <- flat, into: "", do: encode_json!(name, datatype, x)
  end

  defp flatten!(name, shape, [first | _] = data) when is_list(first) do
    if nested?(shape, data), do: List.flatten(data), else: Error.bad("input '#{name}': \"data\" is not nested as its shape")
  end

  defp flatten!(_, _, data) when is_list(data), do: data
  defp flatten!(name, _, _), do: Error.bad("input '#{name}': \"data\" must be an array")

  defp nested?([], element), do: not is_list(element)

  defp nested?([dim | shape], data) do
    is_list(data) and length(data) == dim and Enum.all?(data, &nested?(shape, &1))
  end

  defp encode_json!(_, "BOOL", x) when is_boolean(x), do: encode("BOOL", x)
  defp encode_json!(_, "BYTES", x) when is_binary(x), do: encode("BYTES", x)

  defp encode_json!(name, datatype, x) when is_number(x) and datatype in @floats do
    binary = encode(datatype, x)
    if hd(unpack(datatype, binary)) in [:inf, :neg_inf], do: unexpected!(name, datatype, x)
    binary
  end

  for bits <- [8, 16, 32, 64] do
    @bits bits
    defp encode_json!(_, unquote("UINT#{bits}"), x) when is_integer(x) and x in 0..unquote((1 <<< bits) - 1), do: <<x::little-@bits>>

    defp encode_json!(_, unquote("INT#{bits}"), x)
         when is_integer(x) and x in unquote(-(1 <<< (bits - 1)))..unquote((1 <<< (bits - 1)) - 1),
         do: <<x::little-@bits>>
  end

  defp encode_json!(name, datatype, x), do: unexpected!(name, datatype, x)

  defp unexpected!(name, datatype, x) do
    Error.bad("input '#{name}': #{inspect(x, limit: 3, printable_limit: 40)} is not an element of datatype #{datatype}")
  end

  @doc "The elements for \"data\" of a response."
  def to_json!(%__MODULE__{} = tensor) do
    elements = elements(tensor)

    case tensor.datatype do
      "BYTES" ->
        unless Enum.all?(elements, &String.valid?/1) do
          Error.bad("output '#{tensor.name}' has elements that are not UTF-8: request it as binary data")
        end

      datatype when datatype in @floats ->
        if Enum.any?(elements, &is_atom/1) do
          Error.bad("output '#{tensor.name}' has NaN or infinity, which JSON has not: request it as binary data")
        end

      _ ->
        :ok
    end

    elements
  end

  @doc "The shortest decimal text that reads back as the same element of the datatype."
  def decimal(_, true), do: "1"
  def decimal(_, false), do: "0"
  def decimal(_, :nan), do: "nan"
  def decimal(_, :inf), do: "inf"
  def decimal(_, :neg_inf), do: "-inf"
  def decimal(_, x) when is_integer(x), do: Integer.to_string(x)

  def decimal("FP64", x), do: :erlang.float_to_binary(x, [:short])

  def decimal(datatype, x) do
    wanted = encode(datatype, x)

    Enum.find_value(1..16, fn digits ->
      short = String.to_float(:erlang.float_to_binary(x, scientific: digits))
      if encode(datatype, short) == wanted, do: :erlang.float_to_binary(short, [:short])
    end)
  end
end
