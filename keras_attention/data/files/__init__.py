"""Files of texts, documents, points and images."""
