defmodule Oip.Model do
  @moduledoc "A model as it is served. `inputs` and `outputs` are lists of `{name, datatype, shape}`, as declared."
  defstruct [:name, :compute, :batching, :inputs, :outputs, :labels, :table, :versions]

  @max_batch 64

  @doc "The shape that the metadata shows: a batching model takes a batch dimension in front."
  def full_shape(%__MODULE__{batching: true}, shape), do: [-1 | shape]
  def full_shape(_, shape), do: shape

  @doc "Is `shape` one that the declared `full` shape allows?"
  def fits?(%__MODULE__{} = model, full, shape) do
    length(full) == length(shape) and
      Enum.zip(full, shape) |> Enum.all?(fn {want, dim} -> want == -1 or want == dim end) and
      (not model.batching or hd(shape) in 1..@max_batch)
  end
end

defmodule Oip.Models do
  @moduledoc "The models by name."
  use GenServer
  alias Oip.{Error, Model}

  def start_link(path), do: GenServer.start_link(__MODULE__, path, name: __MODULE__)

  @doc "The model and the version that answers; `version` is nil if the URL names none."
  def find!(name, version) do
    model =
      case :ets.lookup(__MODULE__, name) do
        [{_, model}] -> model
        [] -> Error.not_found("unknown model '#{name}'")
      end

    cond do
      version == nil -> {model, List.last(model.versions)}
      version in model.versions -> {model, version}
      true -> Error.not_found("model '#{name}' has no version '#{version}'")
    end
  end

  @impl true
  def init(path) do
    :ets.new(__MODULE__, [:named_table, :protected, :set, read_concurrency: true])
    for {name, role} <- Oip.Roles.read(path), do: :ets.insert(__MODULE__, {name, model(name, role)})
    {:ok, nil}
  end

  defp model(name, role) do
    %Model{
      name: name,
      compute: role["compute"],
      batching: Map.get(role, "batching", false),
      inputs: Enum.map(role["inputs"], &tensor/1),
      outputs: Enum.map(role["outputs"], &tensor/1),
      labels: Map.get(role, "labels", %{}),
      table: role["table"],
      versions: Map.get(role, "versions", ["1"])
    }
  end

  defp tensor(t), do: {t["name"], t["datatype"], t["shape"]}
end
