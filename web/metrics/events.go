// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ironrail/ironrail/engine/event"
)

const (
	// labelValues is how many values a label may have; further ones are counted as other.
	labelValues = 64
	other       = "other"
	// none is the value of a label that a thing does not have, such as the model of a
	// step of the site.
	none = "none"
	// openSteps is how many running steps are remembered.
	openSteps = 1 << 17
)

// durations are the buckets of a step's duration in seconds: from a look at a BMC to a
// burn-in of a day.
var durations = []float64{1, 5, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400}

// counters is what is counted of events.
type counters struct {
	took     *prometheus.HistogramVec
	ends     *prometheus.CounterVec
	failures *prometheus.CounterVec
	retries  *prometheus.CounterVec
	slow     *prometheus.CounterVec
	findings *prometheus.CounterVec
	effects  *prometheus.CounterVec
	runs     *prometheus.CounterVec
	missed   prometheus.Counter

	mu    sync.Mutex // guards known
	known map[string]map[string]bool
}

func newCounters() *counters {
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return &counters{
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "ironrail_step_duration_seconds", Buckets: durations,
			Help: "How long steps ran, by stage, model of the node (hardware) and how they ended."}, []string{"stage", "model", "result"}),
		ends:     vec("ironrail_steps_ended_total", "Steps that ended, by stage and result: done, observed (already so), failed, skipped.", "stage", "result"),
		failures: vec("ironrail_step_failures_total", "Steps that failed, by stage and kind of the error.", "stage", "kind"),
		retries:  vec("ironrail_step_retries_total", "Repetitions of steps after a passing error, by stage and kind of the error.", "stage", "kind"),
		slow:     vec("ironrail_steps_slow_total", "Steps that ran for longer than their P95, by stage.", "stage"),
		findings: vec("ironrail_findings_total", "Findings, by the stage that made them.", "stage"),
		effects:  vec("ironrail_effects_total", "Entries of the journal about side effects (intents and outcomes), by stage.", "stage"),
		runs:     vec("ironrail_runs_ended_total", "Runs that ended, by outcome.", "outcome"),
		missed:   prometheus.NewCounter(prometheus.CounterOpts{Name: "ironrail_events_missed_total", Help: "Events that were not counted since the reader was too slow."}),
		known:    map[string]map[string]bool{},
	}
}

func (c *counters) all() []prometheus.Collector {
	return []prometheus.Collector{c.took, c.ends, c.failures, c.retries, c.slow, c.findings, c.effects, c.runs, c.missed}
}

// bound returns a value of a label, or other where the label has too many.
func (c *counters) bound(label, value string) string {
	if value == "" {
		return none
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.known[label]
	if of == nil {
		of = map[string]bool{}
		c.known[label] = of
	}
	switch {
	case of[value]:
	case len(of) >= labelValues || len(value) > 100:
		return other
	default:
		of[value] = true
	}
	return value
}

// count counts one event. open are the starts of the steps that run.
func (m *Metrics) count(e event.Event, open map[string]event.Event) {
	c := m.events
	stage := c.bound("stage", e.Stage)
	switch e.Type {
	case event.StepStarted:
		if len(open) < openSteps {
			open[e.Step] = e
		}
	case event.StepDone, event.StepFailed:
		m.countEnd(e, open, stage)
	case event.StepSkipped:
		c.ends.WithLabelValues(stage, "skipped").Inc()
	case event.StepRetried:
		c.retries.WithLabelValues(stage, c.bound("kind", e.Data["kind"])).Inc()
	case event.StepSlow:
		c.slow.WithLabelValues(stage).Inc()
	case event.FindingMade:
		c.findings.WithLabelValues(stage).Inc()
	case event.EffectDone:
		c.effects.WithLabelValues(stage).Inc()
	case event.RunEnded:
		clear(open)
		c.runs.WithLabelValues(c.bound("outcome", e.Text)).Inc()
	case event.Note:
		c.countMissed(e)
	}
}

// countMissed counts what a subscription says that it has missed; other notes have a run,
// a step or no number.
func (c *counters) countMissed(e event.Event) {
	if e.Total > 0 && e.Run == "" && e.Step == "" {
		c.missed.Add(float64(e.Total))
	}
}

// countEnd counts the end of a step.
func (m *Metrics) countEnd(e event.Event, open map[string]event.Event, stage string) {
	c, result := m.events, "done"
	switch {
	case e.Type == event.StepFailed:
		result = "failed"
		c.failures.WithLabelValues(stage, c.bound("kind", e.Data["kind"])).Inc()
	case e.Data["observed"] != "":
		result = "observed"
	}
	m.observe(e, open, stage, result)
	c.ends.WithLabelValues(stage, result).Inc()
}

// observe adds the duration of a step that was seen to start.
func (m *Metrics) observe(e event.Event, open map[string]event.Event, stage, result string) {
	began, seen := open[e.Step]
	delete(open, e.Step)
	if !seen || e.Time.Before(began.Time) {
		return
	}
	model := m.events.bound("model", m.models[e.Node])
	m.events.took.WithLabelValues(stage, model, result).Observe(e.Time.Sub(began.Time).Seconds())
}
