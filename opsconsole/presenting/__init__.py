"""State to rows and sentences, shared by screens and command line. Pure: no clock, no I/O."""
