"""People read in UTC here, so that what is read does not depend on the machine."""

from tests.ui.conftest import utc  # noqa: F401 - a fixture for every test
