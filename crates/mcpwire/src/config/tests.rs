//! What is found where, what wins, and what is said about the rest.
