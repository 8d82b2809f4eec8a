"""Text to ids and ids to text: characters, words, subwords, and documents of sentences."""
