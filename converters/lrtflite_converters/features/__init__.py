"""The frozen feature model below the replay layer."""
