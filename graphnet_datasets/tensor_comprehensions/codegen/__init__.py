"""From instances to C: nests of loops, register tiles, and the compiler that is run on them."""
