"""The scripted peers, their answers and the rows about clients."""
