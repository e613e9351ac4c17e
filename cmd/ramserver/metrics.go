package main

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// collector turns the server's own counters into metrics when they are asked
// for.
type collector struct{ r *running }

var (
	descSize       = prometheus.NewDesc("ramserver_store_size_bytes", "Limit of data and metadata.", []string{"store"}, nil)
	descUsed       = prometheus.NewDesc("ramserver_store_used_bytes", "Data and metadata.", []string{"store"}, nil)
	descInodes     = prometheus.NewDesc("ramserver_store_inodes", "Limit of inodes.", []string{"store"}, nil)
	descUsedInodes = prometheus.NewDesc("ramserver_store_used_inodes", "Inodes.", []string{"store"}, nil)
	descCalls      = prometheus.NewDesc("ramserver_nfs_calls_total", "Calls by procedure.", []string{"procedure"}, nil)
	descErrors     = prometheus.NewDesc("ramserver_nfs_errors_total", "Calls answered with an error, by procedure.", []string{"procedure"}, nil)
	descBytes      = prometheus.NewDesc("ramserver_nfs_bytes_total", "Bytes on the wire.", []string{"direction"}, nil)
	descRefused    = prometheus.NewDesc("ramserver_nfs_refused_total", "Calls denied, or to what is not served.", nil, nil)
	descReplayed   = prometheus.NewDesc("ramserver_nfs_replayed_total", "Repeated calls answered as the first time.", nil, nil)
	descPanics     = prometheus.NewDesc("ramserver_nfs_panics_total", "Calls that failed in the server.", nil, nil)
	descAccepted   = prometheus.NewDesc("ramserver_nfs_connections_total", "Connections accepted.", nil, nil)
	descEvicted    = prometheus.NewDesc("ramserver_nfs_evicted_total", "Connections closed to make room for others.", nil, nil)
	descSMBCalls   = prometheus.NewDesc("ramserver_smb_requests_total", "Requests by command.", []string{"command"}, nil)
	descSMBErrors  = prometheus.NewDesc("ramserver_smb_errors_total", "Requests answered with an error, by command.", []string{"command"}, nil)
	descSMBBytes   = prometheus.NewDesc("ramserver_smb_bytes_total", "Bytes on the wire.", []string{"direction"}, nil)
	descSMBLogons  = prometheus.NewDesc("ramserver_smb_failed_logons_total", "Logons that were refused.", nil, nil)
	descSMBPanics  = prometheus.NewDesc("ramserver_smb_panics_total", "Requests that failed in the server.", nil, nil)
	descSMBConns   = prometheus.NewDesc("ramserver_smb_connections", "Open connections.", nil, nil)
	descConns      = prometheus.NewDesc("ramserver_nfs_connections", "Open connections.", nil, nil)
)

func (c collector) Describe(out chan<- *prometheus.Desc) {
	prometheus.DescribeByCollect(c, out)
}

func (c collector) Collect(out chan<- prometheus.Metric) {
	put := func(d *prometheus.Desc, t prometheus.ValueType, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, t, v, labels...)
	}
	for _, s := range c.r.stores {
		st := s.Statfs()
		put(descSize, prometheus.GaugeValue, float64(st.TotalBytes), s.Name())
		put(descUsed, prometheus.GaugeValue, float64(st.UsedBytes), s.Name())
		put(descInodes, prometheus.GaugeValue, float64(st.TotalInodes), s.Name())
		put(descUsedInodes, prometheus.GaugeValue, float64(st.UsedInodes), s.Name())
	}
	if c.r.smb != nil {
		st := c.r.smb.Stats()
		for _, p := range st.Commands {
			put(descSMBCalls, prometheus.CounterValue, float64(p.Calls), p.Name)
			put(descSMBErrors, prometheus.CounterValue, float64(p.Errors), p.Name)
		}
		put(descSMBBytes, prometheus.CounterValue, float64(st.BytesIn), "in")
		put(descSMBBytes, prometheus.CounterValue, float64(st.BytesOut), "out")
		put(descSMBLogons, prometheus.CounterValue, float64(st.FailedLogons))
		put(descSMBPanics, prometheus.CounterValue, float64(st.Panics))
		put(descSMBConns, prometheus.GaugeValue, float64(len(st.Conns)))
	}
	if c.r.native == nil {
		return // go-nfs does not count
	}
	st := c.r.native.Stats()
	for _, p := range st.Procedures {
		put(descCalls, prometheus.CounterValue, float64(p.Calls), procedureName(&p))
		put(descErrors, prometheus.CounterValue, float64(p.Errors), procedureName(&p))
	}
	put(descBytes, prometheus.CounterValue, float64(st.BytesIn), "in")
	put(descBytes, prometheus.CounterValue, float64(st.BytesOut), "out")
	put(descRefused, prometheus.CounterValue, float64(st.Refused))
	put(descReplayed, prometheus.CounterValue, float64(st.Replayed))
	put(descPanics, prometheus.CounterValue, float64(st.Panics))
	put(descAccepted, prometheus.CounterValue, float64(st.Accepted))
	put(descEvicted, prometheus.CounterValue, float64(st.Evicted))
	put(descConns, prometheus.GaugeValue, float64(len(st.Conns)))
}

// serveMetrics opens the metrics port.
func (r *running) serveMetrics(failed chan<- error) error {
	l, err := net.Listen("tcp", r.plan.metrics.String())
	if err != nil {
		return fmt.Errorf("--metrics: %w", err)
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(collector{r}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	srv := &http.Server{
		Handler: mux, MaxHeaderBytes: 16 << 10,
		ReadHeaderTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute,
	}
	r.onClose(func() { srv.Close() })
	r.metrics = l.Addr()
	background(failed, func() error { return srv.Serve(l) })
	return nil
}
