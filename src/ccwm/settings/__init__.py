"""Every setting: schema, loading, variants, presets and their reference."""
