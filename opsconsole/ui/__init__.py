"""The console: screens on Textual. Knows presenting and core types; never transport, store or hostkit."""
