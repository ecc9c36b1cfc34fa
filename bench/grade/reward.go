package grade

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// reward reads a number, or an object of numbers: its key reward, or its only key.
func reward(text string) (score float64, why string) {
	text = strings.TrimSpace(text)
	score, err := strconv.ParseFloat(text, 64)
	if err != nil {
		var all map[string]float64
		if json.Unmarshal([]byte(text), &all) != nil {
			return 0, "grader: its reward is neither a number nor an object of numbers"
		}
		named, known := all["reward"]
		if !known && len(all) != 1 {
			return 0, fmt.Sprintf("grader: its %d rewards have none with the name reward", len(all))
		}
		if score = named; !known {
			for _, only := range all {
				score = only
			}
		}
	}
	if !(score >= 0 && score <= 1) {
		return 0, fmt.Sprintf("grader: a reward of %v is not from 0 to 1", score)
	}
	if score < 1 {
		why = fmt.Sprintf("grader: reward %v", score)
	}
	return score, why
}
