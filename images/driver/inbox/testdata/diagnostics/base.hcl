# What every case has beside its own files.
site "s" {}
