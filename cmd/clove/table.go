package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
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

// usualWidth is the number of columns that is assumed if stdout is no terminal.
const usualWidth = 80

// width is how many columns stdout has.
func (s *screen) width() int {
	window, err := unix.IoctlGetWinsize(int(s.out.Fd()), unix.TIOCGWINSZ)
	if err != nil || window.Col == 0 {
		return usualWidth
	}
	return int(window.Col)
}

// cellFloor is the length below which no cell is cut: less would show nothing.
const cellFloor = 8

// printFitting is printTable for rows that must fit the terminal: the columns in cut
// are shortened, in that order. JSON has them whole.
func (s *screen) printFitting(rows [][]string, cut ...int) error {
	widths := columnWidths(rows)
	// The gap behind the last column is not printed.
	excess := -s.width() - columnGap
	for _, width := range widths {
		excess += width + columnGap
	}
	for _, column := range cut {
		if column >= len(widths) || excess <= 0 {
			continue
		}
		// A column is cut by no more than is needed, and what it could not give the
		// next one gives.
		length := max(widths[column]-excess, min(cellFloor, widths[column]))
		excess -= widths[column] - length
		for _, row := range rows {
			row[column] = shortened(printable(row[column]), length)
		}
	}
	return printTable(s.out, rows)
}

// shortened ends with an ellipsis if something was cut. It counts characters, not
// bytes.
func shortened(text string, length int) string {
	if utf8.RuneCountInString(text) <= length {
		return text
	}
	return string([]rune(text)[:length-1]) + "…"
}

// wrapped breaks text at blanks into lines of at most width characters. A longer part
// gets a line of its own. Line breaks in text count as blanks, and empty lines stay.
func wrapped(text string, width int) []string {
	var lines []string
	for i, paragraph := range strings.Split(text, "\n\n") {
		if i > 0 {
			lines = append(lines, "")
		}
		line := ""
		for _, part := range strings.Fields(paragraph) {
			switch {
			case line == "":
				line = part
			case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(part) <= width:
				line += " " + part
			default:
				lines, line = append(lines, line), part
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// none says on a terminal that there is nothing to show. A pipe and JSON stay empty.
func (s *screen) none(text string) {
	if !s.json && isTerminal(s.out) {
		s.say("clove", cyan, text)
	}
}
