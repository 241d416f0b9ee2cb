"""Commands of the tuners: `graphnet tasks`, `graphnet tune` and `graphnet records`."""

from . import records, tune

APPS = (tune.app, records.app)
