defmodule Oip.Roles do
  @moduledoc "Reads the file of model roles: the part of TOML that it needs."

  @doc "[{table name, %{key => value}}] in the order of the file."
  def read(path), do: path |> File.read!() |> parse()

  def parse(text), do: tables(skip(text), [])

  defp tables("", done), do: done |> Enum.reverse() |> Enum.map(fn {n, m} -> {n, m} end)

  defp tables("[" <> rest, done) do
    [name, rest] = String.split(rest, "]", parts: 2)
    tables(skip(rest), [{String.trim(name), %{}} | done])
  end

  defp tables(text, [{name, map} | done]) do
    {key, value, rest} = pair(text)
    tables(skip(rest), [{name, Map.put(map, key, value)} | done])
  end

  defp pair(text) do
    {key, rest} = key(text)
    "=" <> rest = skip(rest)
    {value, rest} = value(skip(rest))
    {key, value, rest}
  end

  defp key("\"" <> _ = text), do: value(text)

  defp key(text) do
    [key] = Regex.run(~r/^[A-Za-z0-9_-]+/, text)
    {key, binary_part(text, byte_size(key), byte_size(text) - byte_size(key))}
  end

  defp value("\"" <> rest), do: string(rest, [])
  defp value("true" <> rest), do: {true, rest}
  defp value("false" <> rest), do: {false, rest}
  defp value("[" <> rest), do: array(skip(rest), [])
  defp value("{" <> rest), do: table(skip(rest), %{})

  defp value(text) do
    [number] = Regex.run(~r/^[-+0-9.eE_]+/, text)
    rest = binary_part(text, byte_size(number), byte_size(text) - byte_size(number))

    case Integer.parse(number) do
      {int, ""} -> {int, rest}
      _ -> {String.to_float(number), rest}
    end
  end

  defp string("\"" <> rest, acc), do: {acc |> Enum.reverse() |> IO.iodata_to_binary(), rest}
  defp string("\\n" <> rest, acc), do: string(rest, ["\n" | acc])
  defp string("\\t" <> rest, acc), do: string(rest, ["\t" | acc])
  defp string(<<?\\, c, rest::binary>>, acc), do: string(rest, [c | acc])
  defp string(<<c, rest::binary>>, acc), do: string(rest, [c | acc])

  defp array("]" <> rest, acc), do: {Enum.reverse(acc), rest}
  defp array("," <> rest, acc), do: array(skip(rest), acc)

  defp array(text, acc) do
    {value, rest} = value(text)
    array(skip(rest), [value | acc])
  end

  defp table("}" <> rest, map), do: {map, rest}
  defp table("," <> rest, map), do: table(skip(rest), map)

  defp table(text, map) do
    {key, value, rest} = pair(text)
    table(skip(rest), Map.put(map, key, value))
  end

  defp skip(<<c, rest::binary>>) when c in ' \t\r\n', do: skip(rest)

  defp skip("#" <> rest) do
    case String.split(rest, "\n", parts: 2) do
      [_, rest] -> skip(rest)
      [_] -> ""
    end
  end

  defp skip(text), do: text
end
