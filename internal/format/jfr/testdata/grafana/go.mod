module grafana

go 1.25

require github.com/grafana/jfr-parser v0.9.0
