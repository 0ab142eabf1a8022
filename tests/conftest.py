from hypothesis import settings

settings.register_profile("unhurried", deadline=None)  # how long an example takes says nothing about its truth
settings.load_profile("unhurried")
