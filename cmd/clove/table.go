package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// printTable aligns rows in columns. Cells are made printable first: they may come from
// an agent.
func printTable(w io.Writer, rows [][]string) error {
	widths := columnWidths(rows)
	// Buffered, so that a long table is not one system call for each line.
	lines := bufio.NewWriter(w)
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

// columnGap is the number of blanks between two columns.
const columnGap = 2

// columnWidths are the lengths of each column's longest cell, in characters.
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

// shortID is how many characters of an ID are shown: enough to distinguish runs.
const shortID = 8
