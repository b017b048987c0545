"""The command line of Parley: a pipeline's and an operator's view, over the REST API (texts.md section 5).

`app` puts the commands together and turns every outcome into one of six exit statuses (`exits`); `api` speaks HTTP,
`files` reads manifests, `output` writes. Data goes to standard output, everything said about it to standard error.
Nothing here needs Django or the server's code; manifests are read by `xdscore.schema`, as the server reads them.
"""
