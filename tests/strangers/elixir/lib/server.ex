defmodule Oip.Listener do
  @moduledoc "Owns the listening socket and the processes that accept from it."
  use GenServer

  @acceptors 8
  @options [
    :binary, active: false, ip: {127, 0, 0, 1}, reuseaddr: true, backlog: 1024, nodelay: true, buffer: 65_536,
    send_timeout: 60_000, send_timeout_close: true
  ]

  def start_link(port), do: GenServer.start_link(__MODULE__, port, name: __MODULE__)
  def port, do: GenServer.call(__MODULE__, :port)

  @impl true
  def init(port) do
    {:ok, listening} = :gen_tcp.listen(port, @options)
    for _ <- 1..@acceptors, do: spawn_link(fn -> accept(listening) end)
    {:ok, listening}
  end

  @impl true
  def handle_call(:port, _, listening) do
    {:ok, port} = :inet.port(listening)
    {:reply, port, listening}
  end

  defp accept(listening) do
    case :gen_tcp.accept(listening) do
      {:ok, socket} -> hand_over(socket)
      {:error, :closed} -> exit(:normal)
      {:error, _} -> Process.sleep(50)
    end

    accept(listening)
  end

  # Every connection is a process of its own: it fails for itself alone.
  defp hand_over(socket) do
    {:ok, pid} =
      Task.Supervisor.start_child(Oip.Connections, fn ->
        receive do
          :yours -> Oip.Connection.serve(socket)
        after
          5000 -> :ok
        end
      end)

    case :gen_tcp.controlling_process(socket, pid) do
      :ok -> send(pid, :yours)
      {:error, _} -> :gen_tcp.close(socket)
    end
  end
end

defmodule Oip.Server do
  @moduledoc "The command line and the supervision tree."

  def main(argv) do
    {options, paths, wrong} = OptionParser.parse(argv, strict: [port: :integer])

    case {paths, wrong} do
      {[path], []} -> start(Keyword.get(options, :port, 8000), path)
      _ -> stop("usage: start [--port PORT] ROLES.toml")
    end
  end

  defp start(port, path) do
    Process.flag(:trap_exit, true)

    children = [
      Oip.Cache,
      {Oip.Models, path},
      {Task.Supervisor, name: Oip.Connections},
      {Oip.Listener, port}
    ]

    case Supervisor.start_link(children, strategy: :one_for_one, name: Oip.Supervisor) do
      {:ok, pid} ->
        IO.puts("http://127.0.0.1:#{Oip.Listener.port()}")

        receive do
          {:EXIT, ^pid, reason} -> stop("the server ended: #{inspect(reason)}")
        end

      {:error, reason} ->
        stop("the server does not start: #{inspect(reason)}")
    end
  end

  defp stop(message) do
    IO.puts(:stderr, message)
    System.halt(1)
  end
end
