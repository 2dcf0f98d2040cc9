defmodule Oip.Error do
  @moduledoc "A request that cannot be served: an HTTP status and the message for the error object."
  defexception [:message, status: 400]

  def bad(message), do: raise(__MODULE__, message: message, status: 400)
  def not_found(message), do: raise(__MODULE__, message: message, status: 404)
end
