"""What is judged of clients, which are asked for inferences and answered by scripted peers; over gRPC likewise."""
