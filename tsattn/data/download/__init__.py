"""Named data sets fetched into the cache: resumed, checked, and there whole or not at all.

fetch.py     one set or many: lock, sources in order, checks, publication
remotes.py   the sources: mirror, Zenodo record, the archive's own zip
transfer.py  one file over HTTP: resume, retry, time out
unpack.py    the two files out of a zip that is not trusted
contents.py  what was fetched against what the registry knows
store.py     the cache: what lies there, with sizes and checksums
"""
