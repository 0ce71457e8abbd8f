def design(run):
    raise NotImplementedError
