defmodule Oip.Json do
  @moduledoc """
  JSON, exactly: integers of any size stay integers, floats keep their sign and all their bits. Objects are read as
  maps and written from `{:object, [{key, value}]}`, in that order. Null is `:null`.
  """

  @doc "`{:ok, value}` or `{:error, what and where}`."
  def decode(text) do
    {value, rest} = value(skip(text))
    if skip(rest) == "", do: {:ok, value}, else: wrong(rest)
  catch
    {:wrong, rest} -> {:error, "unexpected text at byte #{byte_size(text) - byte_size(rest)}"}
  end

  defp value("\"" <> rest), do: string(rest, rest, 0, [])
  defp value("{" <> rest), do: object(skip(rest), %{})
  defp value("[" <> rest), do: array(skip(rest))
  defp value("true" <> rest), do: {true, rest}
  defp value("false" <> rest), do: {false, rest}
  defp value("null" <> rest), do: {:null, rest}
  defp value(<<c, _::binary>> = text) when c in ?0..?9 or c == ?-, do: number(text)
  defp value(rest), do: wrong(rest)

  defp array("]" <> rest), do: {[], rest}
  defp array(text), do: array(text, [])

  defp array(<<c, rest::binary>>, acc) when c in ?1..?9, do: integers(rest, c - ?0, 1, acc)
  defp array(text, acc), do: text |> value() |> next(acc)

  defp next({value, rest}, acc) do
    case skip(rest) do
      "," <> rest -> array(skip(rest), [value | acc])
      "]" <> rest -> {Enum.reverse([value | acc]), rest}
      rest -> wrong(rest)
    end
  end

  # Arrays of integers are long: one loop without a call an element. `size` is what of the number has been read.
  defp integers(<<c, rest::binary>>, size, sign, acc) when c in ?0..?9, do: integers(rest, size * 10 + c - ?0, sign, acc)
  defp integers(<<?,, c, rest::binary>>, size, sign, acc) when c in ?1..?9, do: integers(rest, c - ?0, 1, [sign * size | acc])
  defp integers(<<", ", c, rest::binary>>, size, sign, acc) when c in ?1..?9, do: integers(rest, c - ?0, 1, [sign * size | acc])
  defp integers(<<",-", c, rest::binary>>, size, sign, acc) when c in ?1..?9, do: integers(rest, c - ?0, -1, [sign * size | acc])
  defp integers(<<", -", c, rest::binary>>, size, sign, acc) when c in ?1..?9, do: integers(rest, c - ?0, -1, [sign * size | acc])

  defp integers(<<c, _::binary>> = rest, size, sign, acc) when c in '.eE' do
    rest |> float(Integer.to_string(sign * size)) |> next(acc)
  end

  defp integers(rest, size, sign, acc), do: next({sign * size, rest}, acc)

  defp object("}" <> rest, map) when map == %{}, do: {map, rest}

  defp object("\"" <> rest, map) do
    {key, rest} = string(rest, rest, 0, [])

    with ":" <> rest <- skip(rest), {value, rest} <- value(skip(rest)) do
      map = Map.put(map, key, value)

      case skip(rest) do
        "," <> rest -> object(skip(rest), map)
        "}" <> rest -> {map, rest}
        rest -> wrong(rest)
      end
    else
      rest -> wrong(rest)
    end
  end

  defp object(rest, _), do: wrong(rest)

  # --- numbers ------------------------------------------------------------------------------------------------

  defp number("-" <> rest = text), do: number(rest, text, -1)
  defp number(text), do: number(text, text, 1)

  defp number(<<?0, c, _::binary>>, text, _) when c in ?0..?9, do: wrong(text)

  defp number(<<c, _::binary>> = rest, text, sign) when c in ?0..?9 do
    case whole(rest, 0) do
      {_, <<c, _::binary>> = rest} when c in '.eE' -> float(rest, binary_part(text, 0, byte_size(text) - byte_size(rest)))
      {value, rest} -> {sign * value, rest}
    end
  end

  defp number(rest, _, _), do: wrong(rest)

  defp whole(<<c, rest::binary>>, value) when c in ?0..?9, do: whole(rest, value * 10 + c - ?0)
  defp whole(rest, value), do: {value, rest}

  # The runtime reads floats with a fraction only.
  defp float(text, whole) do
    {fraction, rest} = fraction(text)
    {exponent, rest} = exponent(rest)
    {to_float(whole <> if(fraction == "", do: ".0", else: fraction) <> exponent, text), rest}
  end

  defp to_float(float, text) do
    String.to_float(float)
  rescue
    ArgumentError -> wrong(text)
  end

  defp fraction("." <> rest = text) do
    count = digits(rest, 0)
    if count == 0, do: wrong(rest)
    {binary_part(text, 0, count + 1), drop(rest, count)}
  end

  defp fraction(text), do: {"", text}

  defp exponent(<<e, rest::binary>> = text) when e in 'eE' do
    signed = if match?(<<s, _::binary>> when s in '+-', rest), do: 1, else: 0
    count = digits(drop(rest, signed), 0)
    if count == 0, do: wrong(rest)
    {binary_part(text, 0, 1 + signed + count), drop(rest, signed + count)}
  end

  defp exponent(text), do: {"", text}

  defp digits(<<c, rest::binary>>, n) when c in ?0..?9, do: digits(rest, n + 1)
  defp digits(_, n), do: n

  defp drop(text, n), do: binary_part(text, n, byte_size(text) - n)

  # --- strings: `from` is where the present run of plain bytes begins, `n` its length --------------------------

  defp string(<<?", rest::binary>>, from, n, acc) do
    text = IO.iodata_to_binary([acc | binary_part(from, 0, n)])
    if String.valid?(text), do: {text, rest}, else: wrong(from)
  end

  defp string(<<?\\, rest::binary>>, from, n, acc) do
    {text, rest} = escape(rest)
    string(rest, rest, 0, [acc, binary_part(from, 0, n) | text])
  end

  defp string(<<c, rest::binary>>, from, n, acc) when c >= 0x20, do: string(rest, from, n + 1, acc)
  defp string(rest, _, _, _), do: wrong(rest)

  for {c, text} <- [{?", "\""}, {?\\, "\\"}, {?/, "/"}, {?b, "\b"}, {?f, "\f"}, {?n, "\n"}, {?r, "\r"}, {?t, "\t"}] do
    defp escape(<<unquote(c), rest::binary>>), do: {unquote(text), rest}
  end

  defp escape(<<?u, hex::binary-4, rest::binary>> = text) do
    case {hex!(hex, text), rest} do
      {high, <<"\\u", hex::binary-4, rest::binary>>} when high in 0xD800..0xDBFF ->
        low = hex!(hex, text)
        if low not in 0xDC00..0xDFFF, do: wrong(text)
        {<<0x10000 + (high - 0xD800) * 0x400 + (low - 0xDC00)::utf8>>, rest}

      {code, _} when code in 0xD800..0xDFFF ->
        wrong(text)

      {code, _} ->
        {<<code::utf8>>, rest}
    end
  end

  defp escape(rest), do: wrong(rest)

  defp hex!(hex, text) do
    if hex =~ ~r/\A[0-9a-fA-F]{4}\z/, do: String.to_integer(hex, 16), else: wrong(text)
  end

  defp skip(<<c, rest::binary>>) when c in ' \t\r\n', do: skip(rest)
  defp skip(text), do: text

  defp wrong(rest), do: throw({:wrong, rest})

  # --- writing ------------------------------------------------------------------------------------------------

  @doc "The value as iodata."
  def encode({:object, pairs}), do: [?{, commas(pairs, fn {key, value} -> [encode(key), ?: | encode(value)] end), ?}]
  def encode([x | _] = list) when is_number(x), do: numbers(list, "[")
  def encode(list) when is_list(list), do: [?[, commas(list, &encode/1), ?]]
  def encode(text) when is_binary(text), do: [?", quoted(text), ?"]
  def encode(x) when is_integer(x), do: Integer.to_string(x)
  def encode(x) when is_float(x), do: :erlang.float_to_binary(x, [:short])
  def encode(x) when x in [true, false, :null], do: Atom.to_string(x)

  # Arrays of numbers are long: they grow one binary.
  defp numbers([x], text), do: <<text::binary, encode(x)::binary, ?]>>
  defp numbers([x | rest], text), do: numbers(rest, <<text::binary, encode(x)::binary, ?,>>)

  defp commas([], _), do: []
  defp commas([first | rest], fun), do: [fun.(first) | Enum.map(rest, &[?, | fun.(&1)])]

  defp quoted(text) do
    if plain?(text), do: text, else: for(<<c <- text>>, into: "", do: character(c))
  end

  defp plain?(<<c, rest::binary>>) when c >= 0x20 and c != ?" and c != ?\\, do: plain?(rest)
  defp plain?(rest), do: rest == ""

  defp character(?"), do: "\\\""
  defp character(?\\), do: "\\\\"
  defp character(?\n), do: "\\n"
  defp character(c) when c < 0x20, do: "\\u00" <> String.pad_leading(Integer.to_string(c, 16), 2, "0")
  defp character(c), do: <<c>>
end
