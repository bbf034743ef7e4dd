// SPDX-License-Identifier: Apache-2.0

package pdu

import (
	"slices"
	"strconv"
)

// column is one column of a table of a vendor's MIB. The instance of row n is
// oid.prefix.n.suffix. The zero column is one that the model has not.
type column struct {
	oid    string
	prefix string  // of the index: the unit of a chain, the input cord
	suffix string  // of the index: the sensor's type
	scale  float64 // what one count is, in A, V or W
	digits string  // column of decimal digits with the same index; replaces scale
}

func (c column) row(n int) string {
	oid := c.oid + "." + c.prefix + strconv.Itoa(n)
	if c.suffix != "" {
		oid += "." + c.suffix
	}
	return oid
}

// mib is what a model's MIB calls things. An integer of -1 means "not measured"
// in all three.
type mib struct {
	model  string
	source string // where the numbers can be looked up

	power column // of the whole PDU, one row

	state    column // of an outlet
	states   map[int]State
	command  column
	commands map[State]int

	outletAmps, outletWatts column
	outletPhase             column
	phases                  map[int]int // values of outletPhase -> phase that the outlet begins at; nil: as it is
	outletBreaker           column

	phaseAmps, phaseVolts, phaseWatts column

	breakerAmps, breakerRating column
	breakerState               column
	breakerStates              map[int]BreakerState
	load                       column // of a breaker, as the PDU judges it
	loads                      map[int]string
}

func (m *mib) stateOf(n int) State {
	if s, ok := m.states[n]; ok {
		return s
	}
	return Unknown
}

const (
	rpdu2   = "1.3.6.1.4.1.318.1.1.26"
	raritan = "1.3.6.1.4.1.13742.6"
	sentry4 = "1.3.6.1.4.1.1718.4.1"
)

// mibs are the models. Outlets of one PDU only: a chain's other units are not
// reached.
var mibs = []mib{{
	model:  "apc-rpdu2",
	source: "PowerNet-MIB 4.6.0 (powernet460.mib), rPDU2: AP84xx, AP86xx, AP88xx, AP89xx",
	power:  column{oid: rpdu2 + ".4.3.1.5", scale: 10}, // rPDU2DeviceStatusPower, 0.01 kW

	state:    column{oid: rpdu2 + ".9.2.3.1.5"}, // rPDU2OutletSwitchedStatusState
	states:   map[int]State{1: Off, 2: On},
	command:  column{oid: rpdu2 + ".9.2.4.1.5"}, // rPDU2OutletSwitchedControlCommand: immediateOn, immediateOff
	commands: map[State]int{On: 1, Off: 2},

	outletAmps:    column{oid: rpdu2 + ".9.4.3.1.6", scale: 0.1},   // rPDU2OutletMeteredStatusCurrent
	outletWatts:   column{oid: rpdu2 + ".9.4.3.1.7", scale: 1},     // rPDU2OutletMeteredStatusPower
	outletPhase:   column{oid: rpdu2 + ".9.2.2.1.5", scale: 1},     // rPDU2OutletSwitchedPropertiesPhaseLayout
	phases:        map[int]int{1: 1, 2: 2, 3: 3, 4: 1, 5: 2, 6: 3}, // L1-N L2-N L3-N L1-L2 L2-L3 L3-L1
	outletBreaker: column{oid: rpdu2 + ".9.2.2.1.6", scale: 1},     // rPDU2OutletSwitchedPropertiesBank
	phaseAmps:     column{oid: rpdu2 + ".6.3.1.5", scale: 0.1},     // rPDU2PhaseStatusCurrent
	phaseVolts:    column{oid: rpdu2 + ".6.3.1.6", scale: 1},       // rPDU2PhaseStatusVoltage
	phaseWatts:    column{oid: rpdu2 + ".6.3.1.7", scale: 10},      // rPDU2PhaseStatusPower, 0.01 kW
	breakerAmps:   column{oid: rpdu2 + ".8.3.1.5", scale: 0.1},     // rPDU2BankStatusCurrent
	breakerRating: column{oid: rpdu2 + ".8.2.1.5", scale: 1},       // rPDU2BankPropertiesBreakerRating
	load:          column{oid: rpdu2 + ".8.3.1.4"},                 // rPDU2BankStatusLoadState
	loads:         map[int]string{1: "low", 2: "normal", 3: "near overload", 4: "overload"},
}, {
	model:  "raritan-px",
	source: "PDU2-MIB of Raritan PX2 to PX4, and its SNMP MIB User Guide; sensor types rmsCurrent 1, rmsVoltage 4, activePower 5, trip 15",
	power:  column{oid: raritan + ".5.2.3.1.4", prefix: "1.", suffix: "5", digits: raritan + ".3.3.4.1.7"}, // measurementsInletSensorValue

	state:    column{oid: raritan + ".4.1.2.1.3", prefix: "1."}, // outletSwitchingState
	states:   map[int]State{7: On, 8: Off},
	command:  column{oid: raritan + ".4.1.2.1.2", prefix: "1."}, // switchingOperation: off, on
	commands: map[State]int{Off: 0, On: 1},

	outletAmps:  column{oid: raritan + ".5.4.3.1.4", prefix: "1.", suffix: "1", digits: raritan + ".3.5.4.1.7"}, // measurementsOutletSensorValue
	outletWatts: column{oid: raritan + ".5.4.3.1.4", prefix: "1.", suffix: "5", digits: raritan + ".3.5.4.1.7"},
	phaseAmps:   column{oid: raritan + ".5.2.4.1.4", prefix: "1.1.", suffix: "1", digits: raritan + ".3.3.6.1.7"}, // measurementsInletPoleSensorValue
	phaseVolts:  column{oid: raritan + ".5.2.4.1.4", prefix: "1.1.", suffix: "4", digits: raritan + ".3.3.6.1.7"},
	phaseWatts:  column{oid: raritan + ".5.2.4.1.4", prefix: "1.1.", suffix: "5", digits: raritan + ".3.3.6.1.7"},

	breakerAmps:   column{oid: raritan + ".5.3.3.1.4", prefix: "1.", suffix: "1", digits: raritan + ".3.4.4.1.7"}, // measurementsOverCurrentProtectorSensorValue
	breakerState:  column{oid: raritan + ".5.3.3.1.3", prefix: "1.", suffix: "15"},                                // measurementsOverCurrentProtectorSensorState
	breakerStates: map[int]BreakerState{0: BreakerOpen, 1: BreakerClosed},
}, {
	model:  "servertech-sentry4",
	source: "Sentry4-MIB of Server Technology (and Vertiv) PRO units, firmware 8; unit 1, cord 1",

	state:    column{oid: sentry4 + ".8.3.1.1", prefix: "1.1."}, // st4OutletState
	states:   map[int]State{1: On, 2: Off},
	command:  column{oid: sentry4 + ".8.5.1.2", prefix: "1.1."}, // st4OutletControlAction
	commands: map[State]int{On: 1, Off: 2},

	outletAmps:  column{oid: sentry4 + ".8.3.1.3", prefix: "1.1.", scale: 0.01}, // st4OutletCurrent
	outletWatts: column{oid: sentry4 + ".8.3.1.7", prefix: "1.1.", scale: 1},    // st4OutletActivePower
	phaseAmps:   column{oid: sentry4 + ".5.3.1.6", prefix: "1.1.", scale: 0.01}, // st4PhaseCurrent
	phaseVolts:  column{oid: sentry4 + ".5.3.1.3", prefix: "1.1.", scale: 0.1},  // st4PhaseVoltage
	phaseWatts:  column{oid: sentry4 + ".5.3.1.8", prefix: "1.1.", scale: 1},    // st4PhaseActivePower

	breakerAmps:   column{oid: sentry4 + ".7.3.1.3", prefix: "1.1.", scale: 0.01}, // st4BranchCurrent
	breakerRating: column{oid: sentry4 + ".7.2.1.6", prefix: "1.1.", scale: 1},    // st4BranchCurrentCapacity
	breakerState:  column{oid: sentry4 + ".7.3.1.1", prefix: "1.1."},              // st4BranchState
	breakerStates: map[int]BreakerState{1: BreakerClosed, 2: BreakerOpen},
}}

// Models are the names of the models that can be spoken to.
func Models() []string {
	var names []string
	for i := range mibs {
		names = append(names, mibs[i].model)
	}
	slices.Sort(names)
	return names
}

func findMIB(model string) *mib {
	for i := range mibs {
		if mibs[i].model == model {
			return &mibs[i]
		}
	}
	return nil
}
