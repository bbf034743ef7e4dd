// SPDX-License-Identifier: Apache-2.0

package nvidiasmi

import "strings"

func fillECC(r reader) ECC {
	return ECC{
		Mode:              Mode{r.bool("ecc_mode/current_ecc", "ecc_mode/current"), r.bool("ecc_mode/pending_ecc", "ecc_mode/pending")},
		Volatile:          fillCounts(r, "ecc_errors/volatile/"),
		Aggregate:         fillCounts(r, "ecc_errors/aggregate/"),
		ThresholdExceeded: r.bool("ecc_errors/aggregate/sram_threshold_exceeded"),
		ChannelRepair:     r.bool("ecc_errors/channel_repair_pending"),
		TPCRepair:         r.bool("ecc_errors/tpc_repair_pending"),
		Unrepairable:      r.bool("ecc_errors/unrepairable_memory"),
	}
}

// fillCounts reads one scope. GPUs before Turing count single and double bits.
func fillCounts(r reader, scope string) ECCCounts {
	c := ECCCounts{
		SRAMCorrectable:   r.int(scope + "sram_correctable"),
		SRAMUncorrectable: r.int(scope + "sram_uncorrectable"),
		DRAMCorrectable:   r.int(scope + "dram_correctable"),
		DRAMUncorrectable: r.int(scope + "dram_uncorrectable"),
		Correctable:       r.int(scope + "single_bit/total"),
		Uncorrectable:     r.int(scope + "double_bit/total"),
	}
	if c.SRAMUncorrectable == nil {
		c.SRAMUncorrectable = sumParts(r.int(scope+"sram_uncorrectable_parity"),
			r.int(scope+"sram_uncorrectable_secded", scope+"sram_uncorrectable_sec_ded"))
	}
	if c.Correctable == nil {
		c.Correctable = sumParts(c.SRAMCorrectable, c.DRAMCorrectable)
	}
	if c.Uncorrectable == nil {
		c.Uncorrectable = sumParts(c.SRAMUncorrectable, c.DRAMUncorrectable)
	}
	return c
}

// sumParts adds what is known; nil if nothing is.
func sumParts(parts ...*int64) *int64 {
	var total *int64
	for _, p := range parts {
		if p == nil {
			continue
		}
		v := *p
		if total != nil {
			v += *total
		}
		total = &v
	}
	return total
}

func fillPages(r reader) RetiredPages {
	return RetiredPages{
		SingleBit: r.int("retired_pages/multiple_single_bit_retirement/retired_count", "retired_pages/single_bit_ecc"),
		DoubleBit: r.int("retired_pages/double_bit_retirement/retired_count", "retired_pages/double_bit_ecc"),
		Pending: r.bool("retired_pages/pending_retirement", "retired_pages/pending_blacklist", "retired_pages/pending_page_blacklist",
			"retired_pages/pending"),
	}
}

func fillRows(r reader) RemappedRows {
	rows := RemappedRows{
		Correctable:   r.int("remapped_rows/remapped_row_corr", "remapped_rows/correctable_error"),
		Uncorrectable: r.int("remapped_rows/remapped_row_unc", "remapped_rows/uncorrectable_error"),
		Pending:       r.bool("remapped_rows/remapped_row_pending", "remapped_rows/pending"),
		Failure:       r.bool("remapped_rows/remapped_row_failure", "remapped_rows/remapping_failure_occurred"),
	}
	banks := r.at("remapped_rows/row_remapper_histogram", "remapped_rows/bank_remap_availability_histogram")
	if banks == nil {
		return rows
	}
	for _, b := range banks.sub {
		if v, err := parseNumber(b.value); err == nil && v != nil {
			rows.Banks = putValue(rows.Banks, strings.TrimPrefix(b.name, "row_remapper_histogram_"), int64(*v))
		}
	}
	return rows
}
