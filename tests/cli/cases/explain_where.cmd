explain where
