// Command clove-models serves the models to the agents of one owner: it reads their
// requests, and has control decide; package models/front does the work. clove starts it as
// clove-gate, with the channel to control as descriptor 3.
package main
