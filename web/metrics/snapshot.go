// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/report"
	"github.com/ironrail/ironrail/engine/why"
	"github.com/ironrail/ironrail/provision"
)

// describe makes the description of a metric that is read when it is scraped.
func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("ironrail_"+name, help, labels, nil)
}

// The metrics of a snapshot.
var (
	nodesDesc       = describe("nodes", "Nodes of the site, by where they stand: those of `ironrail status`.", "state")
	stepsDesc       = describe("run_steps", "Steps of the run, by state.", "state")
	runDesc         = describe("run_active", "1 while a run is under way, else 0.")
	runStartedDesc  = describe("run_started_timestamp_seconds", "When the run that is under way began; absent without one.")
	drainingDesc    = describe("run_draining", "1 where the run starts nothing new, since it was stopped.")
	openDesc        = describe("findings", "Open findings: nodes that are in quarantine, and what was found of the site itself.", "scope")
	failedDesc      = describe("scrape_errors", "What could not be read for this scrape: 1, by part.", "part")
	judgedDesc      = describe("measurements", "Measurements of the last report, by check and verdict.", "check", "verdict")
	worstDesc       = describe("measurement_worst_ratio", "The measurement nearest to its limit or farthest beyond it, as a ratio of the limit, by check and direction: at_least (below 1 has failed) or at_most (above 1 has).", "check", "limit")
	medianDesc      = describe("measurement_median_ratio", "P50 of the measurements as ratios of their limits, by check and direction.", "check", "limit")
	dhcpDesc        = describe("dhcp_packets_total", "DHCP datagrams, by what became of them; received counts all.", "result")
	bootDesc        = describe("boot_events_total", "What the boot services did for clients, by protocol, event and whether it was refused.", "protocol", "event", "refused")
	sentDesc        = describe("boot_sent_bytes_total", "Bytes that the boot services sent, by protocol.", "protocol")
	bmcRequestsDesc = describe("bmc_requests_total", "Units of work with BMCs: a session, and what was asked in it.")
	bmcErrorsDesc   = describe("bmc_errors_total", "Those that failed, by kind of the error.", "kind")
	allDescriptions = []*prometheus.Desc{nodesDesc, stepsDesc, runDesc, runStartedDesc, drainingDesc, openDesc, failedDesc, judgedDesc, worstDesc, medianDesc, dhcpDesc, bootDesc, sentDesc, bmcRequestsDesc, bmcErrorsDesc}
	nodeStates      = []why.Status{why.Accepted, why.Adopted, why.Held, why.Quarantined, why.Working, why.Late, why.Waiting, why.Cut, why.Skipped, why.Unfinished, why.Untouched}
)

// The directions of limits.
const (
	directionAtLeast = "at_least"
	directionAtMost  = "at_most"
)

// snapshot reads what is so at a scrape.
type snapshot struct {
	source   Source
	counters atomic.Pointer[func() provision.Counters] // nil: there are no services

	mu     sync.Mutex // guards the report that was read last, and unread
	report report.Input
	read   time.Time
	unread error // why events could not be read for this scrape
}

func (s *snapshot) setUnread(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unread = err
}

// Describe implements prometheus.Collector.
func (s *snapshot) Describe(out chan<- *prometheus.Desc) {
	for _, d := range allDescriptions {
		out <- d
	}
}

// Collect implements prometheus.Collector. What cannot be read is left out, and said.
func (s *snapshot) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	c := collection{out}
	if s.source.Status != nil {
		st, err := s.source.Status(ctx)
		c.failed("status", err)
		if err == nil {
			c.status(st, s.source.Now())
		}
	}
	if s.source.Events != nil {
		s.mu.Lock()
		c.failed("events", s.unread)
		s.mu.Unlock()
	}
	if s.source.Report != nil {
		in, err := s.readReport(ctx)
		c.failed("report", err)
		if err == nil {
			c.measurements(in)
		}
	}
	if f := s.counters.Load(); f != nil {
		c.counters((*f)())
	}
}

// readReport returns a report that is not older than reportAge.
func (s *snapshot) readReport(ctx context.Context) (report.Input, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.source.Now()
	if !s.read.IsZero() && now.Sub(s.read) < reportAge && now.After(s.read) {
		return s.report, nil
	}
	in, err := s.source.Report(ctx)
	if err == nil {
		s.report, s.read = in, now
	}
	return in, err
}

// collection sends the metrics of one scrape.
type collection struct{ out chan<- prometheus.Metric }

func (c collection) gauge(d *prometheus.Desc, value float64, labels ...string) {
	c.out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

func (c collection) counter(d *prometheus.Desc, value uint64, labels ...string) {
	c.out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), labels...)
}

func (c collection) failed(part string, err error) {
	value := 0.0
	if err != nil {
		value = 1
	}
	c.gauge(failedDesc, value, part)
}

// status sends where nodes and the run stand.
func (c collection) status(st control.Status, now time.Time) {
	count := map[why.Status]int{}
	for _, n := range why.SummariseNodes(why.NewSite(st, now)) {
		count[n.Status]++
	}
	for _, state := range nodeStates {
		c.gauge(nodesDesc, float64(count[state]), string(state))
	}
	quarantined := 0
	for i := range st.Nodes {
		if st.Nodes[i].Quarantine != nil {
			quarantined++
		}
	}
	c.gauge(openDesc, float64(quarantined), "node")
	if st.Run == nil {
		c.gauge(runDesc, 0)
		c.gauge(openDesc, 0, "site")
		return
	}
	c.gauge(runDesc, 1)
	c.gauge(openDesc, float64(len(st.Run.Findings)), "site")
	c.gauge(runStartedDesc, float64(st.Run.Started.UnixMilli())/1000)
	draining := 0.0
	if st.Run.Draining {
		draining = 1
	}
	c.gauge(drainingDesc, draining)
	for _, state := range slices.Sorted(maps.Keys(st.Run.Counts)) { // a closed list of the executor
		c.gauge(stepsDesc, float64(st.Run.Counts[state]), state)
	}
}

// measurements sends the figures of a report by check.
func (c collection) measurements(in report.Input) {
	verdicts, ratios := map[[2]string]int{}, map[[2]string][]float64{}
	for _, r := range in.Tests {
		for _, m := range r.Measurements {
			verdicts[[2]string{m.Check, m.Verdict}]++
			percent, above, ok := m.ShareOfLimit()
			if !ok || m.Measured == 0 && m.Verdict != report.Pass && (m.Verdict == report.NotJudged || !above) {
				continue // zero is no result here, but a failed one is the worst of what must reach its limit
			}
			key := [2]string{m.Check, directionAtMost}
			if above {
				key[1] = directionAtLeast
			}
			ratios[key] = append(ratios[key], percent/100)
		}
	}
	for key, n := range verdicts {
		c.gauge(judgedDesc, float64(n), key[0], key[1])
	}
	for key, list := range ratios {
		slices.Sort(list)
		worst := list[0]
		if key[1] == directionAtMost {
			worst = list[len(list)-1]
		}
		c.gauge(worstDesc, worst, key[0], key[1])
		c.gauge(medianDesc, list[len(list)/2], key[0], key[1])
	}
}

// counters sends what the services of a run have counted.
func (c collection) counters(n provision.Counters) {
	for _, x := range []struct {
		result string
		count  uint64
	}{{"received", n.DHCP.Received}, {"answered", n.DHCP.Answered}, {"refused", n.DHCP.Refused}, {"dropped", n.DHCP.Dropped}, {"malformed", n.DHCP.Malformed}, {"failed", n.DHCP.Failed}} {
		c.counter(dhcpDesc, x.count, x.result)
	}
	bytes := map[string]uint64{}
	for _, x := range n.Boot { // by words of the services
		c.counter(bootDesc, x.Events, string(x.Proto), x.What, strconv.FormatBool(x.Refused))
		bytes[string(x.Proto)] += x.Bytes
	}
	for _, proto := range slices.Sorted(maps.Keys(bytes)) {
		c.counter(sentDesc, bytes[proto], proto)
	}
	c.counter(bmcRequestsDesc, n.BMC.Requests)
	for _, kind := range slices.Sorted(maps.Keys(n.BMC.Errors)) {
		c.counter(bmcErrorsDesc, n.BMC.Errors[kind], kind.String())
	}
}
