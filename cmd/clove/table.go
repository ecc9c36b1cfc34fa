package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// printTable aligns rows in columns, two blanks apart. Cells are made
// printable first: they may come from an agent.
func printTable(w io.Writer, rows [][]string) error {
	widths := columnWidths(rows)
	lines := bufio.NewWriter(w) // not a call of the kernel's for each
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			fmt.Fprintf(&line, "%-*s", widths[i]+columnGap, printable(cell))
		}
		if _, err := fmt.Fprintln(lines, strings.TrimRight(line.String(), " ")); err != nil {
			return err
		}
	}
	return lines.Flush()
}

// columnGap are the blanks between two columns.
const columnGap = 2

// columnWidths are the letters of each column's longest cell.
func columnWidths(rows [][]string) []int {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(printable(cell)))
		}
	}
	return widths
}

// shortID is as much of an ID as people need.
const shortID = 8
