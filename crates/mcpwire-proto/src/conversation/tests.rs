//! Conversations as transcripts.
