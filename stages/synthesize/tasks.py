synthesize = None
