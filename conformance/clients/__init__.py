"""The other side: clients under judgement, what they are asked to do, what they send, and peers that answer them."""
