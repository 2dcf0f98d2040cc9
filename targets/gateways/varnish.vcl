vcl 4.1;
backend server {
  .host = "@HTTP_SERVER@";
  .port = "@HTTP_SERVER_PORT@";
}
# + sub vcl_recv { return (pipe); }
