defmodule Oip.Cache do
  @moduledoc "A memo for values that depend on nothing but their key. The table belongs to this process."
  use GenServer

  def start_link(_), do: GenServer.start_link(__MODULE__, nil, name: __MODULE__)

  @doc "The value under `key`, computed by `fun` the first time."
  def fetch(key, fun) do
    case :ets.lookup(__MODULE__, key) do
      [{_, value}] ->
        value

      [] ->
        value = fun.()
        :ets.insert(__MODULE__, {key, value})
        value
    end
  end

  @impl true
  def init(_) do
    :ets.new(__MODULE__, [:named_table, :public, :set, read_concurrency: true])
    {:ok, nil}
  end
end
