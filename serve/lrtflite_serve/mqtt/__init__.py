"""Home automation over MQTT: answers, lessons and a few buttons, found by Home Assistant."""
