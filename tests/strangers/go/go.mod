module openinference

go 1.19
