"""What tests share: servers, honest and faulty, made reports, and ways to run the suite."""
