# SPDX-License-Identifier: Apache-2.0
"""What programs written for Hops import of its library: ``from hops import util``."""
