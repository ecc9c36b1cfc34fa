// Command clove-models drops all privileges, then serves models to the agents of one
// owner: package models/front reads their requests, and control decides. clove starts it
// as clove-gate, with the channel to control as descriptor 3.
package main
