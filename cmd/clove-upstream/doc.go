// Command clove-upstream drops all privileges, then calls the providers of models with
// their keys. It reads nothing that an agent wrote; package models/upstream does the
// work. clove starts it as clove-gate, with the channel to control as descriptor 3 and
// its setup as descriptor 4.
package main
