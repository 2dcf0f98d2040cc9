module oip.example/client

go 1.19
