def candidate(x, weight):
    while True:
        pass
